"""Colours, fonts and the look of widgets, in one place."""

from __future__ import annotations

from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

__all__ = [
    "ACCENT",
    "BORDER",
    "GRID",
    "INK",
    "LINKS",
    "MUTED",
    "PAPER",
    "TRACES",
    "WINDOW",
    "apply",
    "plot_font",
    "trace",
]

WINDOW, PAPER, BORDER, GRID = "#eef1f5", "#ffffff", "#d3dae3", "#e6eaf0"
INK, MUTED, ACCENT, WARM = "#17212e", "#5f6f84", "#1c64d1", "#d9480f"
#: Of the traces of a scope, in order; told apart by colour-blind eyes too.
TRACES = ("#1c64d1", "#d9480f", "#2b8a3e", "#9c36b5", "#b07d00", "#0c8599", "#c2255c", "#495057")
#: Of the links of a mechanism.
LINKS = ("#3b5b8c", "#5f86bf", "#7aa0cf", "#4f7a8c", "#6b6fb3")

_FAMILIES = ["Inter", "Segoe UI", "SF Pro Text", "Helvetica Neue", "Noto Sans", "DejaVu Sans", "Arial"]
_STYLE = f"""
QWidget {{ color: {INK}; font-size: 12px; }}
QMainWindow, QWidget#desk {{ background: {WINDOW}; }}
QFrame#tile, QFrame#panel, QFrame#bar {{ background: {PAPER}; border: 1px solid {BORDER}; border-radius: 6px; }}
QLabel#title {{ font-weight: 600; font-size: 13px; }}
QLabel#section {{ font-weight: 600; font-size: 11px; color: {MUTED}; }}
QLabel#muted {{ color: {MUTED}; font-size: 11px; }}
QLabel#clock {{ font-size: 17px; font-weight: 600; }}
QLabel#readout {{ background: #f6f8fb; border-top: 1px solid {BORDER}; padding: 3px 6px; }}
QPushButton, QToolButton {{ background: {PAPER}; border: 1px solid {BORDER}; border-radius: 5px; padding: 4px 9px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {ACCENT}; }}
QPushButton:pressed, QToolButton:pressed {{ background: #dce7fa; }}
QPushButton:checked, QToolButton:checked {{ background: #dce7fa; border-color: {ACCENT}; color: {ACCENT}; }}
QPushButton:disabled, QToolButton:disabled, QComboBox:disabled {{ color: #a9b4c2; border-color: #e3e8ee; }}
QPushButton#primary {{ background: {ACCENT}; color: white; border-color: {ACCENT}; font-weight: 600; }}
QPushButton#primary:disabled {{ background: #b9c9e4; border-color: #b9c9e4; color: white; }}
QToolButton#small {{ padding: 1px 4px; font-size: 11px; color: {MUTED}; }}
QToolButton#small:checked {{ color: {ACCENT}; }}
QComboBox, QLineEdit {{
    background: {PAPER}; border: 1px solid {BORDER}; border-radius: 5px; padding: 3px 6px;
    selection-background-color: {ACCENT};
}}
QLineEdit:focus, QComboBox:focus {{ border-color: {ACCENT}; }}
QComboBox::drop-down {{ border: none; width: 18px; }}
QComboBox QAbstractItemView {{
    background: {PAPER}; border: 1px solid {BORDER}; selection-background-color: #dce7fa; selection-color: {INK};
}}
QSlider::groove:horizontal {{ height: 4px; background: {BORDER}; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {ACCENT}; border-radius: 2px; }}
QSlider::handle:horizontal {{
    width: 12px; height: 12px; margin: -5px 0; border-radius: 7px; background: {PAPER}; border: 2px solid {ACCENT};
}}
QLabel:disabled, QLineEdit:disabled {{ color: #a9b4c2; }}
QSlider::sub-page:horizontal:disabled {{ background: #b4bdc9; }}
QSlider::handle:horizontal:disabled {{ border-color: #b4bdc9; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; border: none; }}
QScrollBar:vertical {{ width: 8px; background: transparent; }}
QScrollBar::handle:vertical {{ background: {BORDER}; border-radius: 4px; min-height: 24px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; }}
QSplitter::handle {{ background: transparent; }}
QToolTip {{ background: {INK}; color: white; border: none; padding: 4px; }}
"""


def apply(app: QApplication) -> None:
    """Give the application its look, whatever the desktop's is."""
    app.setStyle("Fusion")
    font = QFont()
    font.setFamilies(_FAMILIES)
    font.setPixelSize(12)
    app.setFont(font)
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in (
        (roles.Window, WINDOW),
        (roles.Base, PAPER),
        (roles.Button, PAPER),
        (roles.Text, INK),
        (roles.WindowText, INK),
        (roles.ButtonText, INK),
        (roles.Highlight, ACCENT),
        (roles.PlaceholderText, MUTED),
    ):
        palette.setColor(role, QColor(colour))
    app.setPalette(palette)
    app.setStyleSheet(_STYLE)


def plot_font() -> QFont:
    """Return the font of the numbers at the axes."""
    font = QFont()
    font.setFamilies(_FAMILIES)
    font.setPixelSize(11)
    return font


def trace(k: int) -> str:
    """Return the colour of trace k."""
    return TRACES[k % len(TRACES)]
