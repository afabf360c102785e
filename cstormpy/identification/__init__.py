"""Identification: inertial and joint parameters of a mechanism from logged motions and torques."""

from cstormpy.identification.base_parameters import BaseParameter, BaseParameters, base_parameters
from cstormpy.identification.fitting import identify
from cstormpy.identification.result import Identification, OutputIdentification

__all__ = ["BaseParameter", "BaseParameters", "Identification", "OutputIdentification", "base_parameters", "identify"]
