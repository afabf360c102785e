"""Colours, fonts and the look of widgets, in one place."""

from __future__ import annotations

import os

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

WINDOW, PAPER, BORDER, GRID = "#eef1f5", "#ffffff", "#d3dae3", "#e6eaf0"
INK, MUTED, ACCENT, WARM = "#17212e", "#5f6f84", "#1c64d1", "#d9480f"
#: Of the traces of a scope, in order; told apart by colour-blind eyes too.
TRACES = ("#1c64d1", "#d9480f", "#2b8a3e", "#9c36b5", "#b07d00", "#0c8599", "#c2255c", "#495057")
#: Of the links of a mechanism.
LINKS = ("#3b5b8c", "#5f86bf", "#7aa0cf", "#4f7a8c", "#6b6fb3")

#: What the others are made of where they are pressed, written over, or cannot be used.
PRESSED, RAISED, FAINT, FAINT_BORDER, PALE = "#dce7fa", "#f6f8fb", "#a9b4c2", "#e3e8ee", "#b9c9e4"
#: The same by night.
_DARK = {
    "WINDOW": "#12161c",
    "PAPER": "#1b212a",
    "BORDER": "#3a4553",
    "GRID": "#2a323d",
    "INK": "#e6ebf2",
    "MUTED": "#9aa8b9",
    "ACCENT": "#6ea8fe",
    "WARM": "#ff922b",
    "TRACES": ("#6ea8fe", "#ff922b", "#69db7c", "#da77f2", "#ffd43b", "#3bc9db", "#f783ac", "#ced4da"),
    "LINKS": ("#6f93cc", "#8fb1e3", "#a5c4ec", "#7fabbd", "#9fa3e0"),
    "PRESSED": "#26374f",
    "RAISED": "#222a35",
    "FAINT": "#5d6a7a",
    "FAINT_BORDER": "#2a323d",
    "PALE": "#34506f",
}
#: With "dark" or "light" in it the desktop is not asked.
VARIABLE = "CSTORMPY_THEME"

_FAMILIES = ["Inter", "Segoe UI", "SF Pro Text", "Helvetica Neue", "Noto Sans", "DejaVu Sans", "Arial"]


def _style() -> str:
    return f"""
QWidget {{ color: {INK}; font-size: 12px; }}
QMainWindow, QWidget#desk {{ background: {WINDOW}; }}
QFrame#tile, QFrame#panel, QFrame#bar {{ background: {PAPER}; border: 1px solid {BORDER}; border-radius: 6px; }}
QLabel#title {{ font-weight: 600; font-size: 13px; }}
QLabel#section {{ font-weight: 600; font-size: 11px; color: {MUTED}; }}
QLabel#muted {{ color: {MUTED}; font-size: 11px; }}
QLabel#clock {{ font-size: 17px; font-weight: 600; }}
QLabel#readout {{ background: {RAISED}; border-top: 1px solid {BORDER}; padding: 3px 6px; }}
QPushButton, QToolButton {{ background: {PAPER}; border: 1px solid {BORDER}; border-radius: 5px; padding: 4px 9px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {ACCENT}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {PRESSED}; }}
QPushButton:checked, QToolButton:checked {{ background: {PRESSED}; border-color: {ACCENT}; color: {ACCENT}; }}
QPushButton:disabled, QToolButton:disabled, QComboBox:disabled {{ color: {FAINT}; border-color: {FAINT_BORDER}; }}
QPushButton#primary {{ background: {ACCENT}; color: {PAPER}; border-color: {ACCENT}; font-weight: 600; }}
QPushButton#primary:disabled {{ background: {PALE}; border-color: {PALE}; color: {PAPER}; }}
QToolButton#small {{ padding: 1px 4px; font-size: 11px; color: {MUTED}; }}
QToolButton#small:checked {{ color: {ACCENT}; }}
QComboBox, QLineEdit {{
    background: {PAPER}; border: 1px solid {BORDER}; border-radius: 5px; padding: 3px 6px;
    selection-background-color: {ACCENT};
}}
QLineEdit:focus, QComboBox:focus {{ border-color: {ACCENT}; }}
QComboBox::drop-down {{ border: none; width: 18px; }}
QMenu {{ background: {PAPER}; border: 1px solid {BORDER}; padding: 4px; }}
QMenu::item {{ padding: 4px 24px 4px 22px; border-radius: 4px; }}
QMenu::item:selected {{ background: {PRESSED}; color: {INK}; }}
QMenu::separator {{ height: 1px; background: {BORDER}; margin: 4px 6px; }}
QMessageBox, QFileDialog {{ background: {PAPER}; }}
QComboBox QAbstractItemView {{
    background: {PAPER}; border: 1px solid {BORDER}; selection-background-color: {PRESSED}; selection-color: {INK};
}}
QSlider::groove:horizontal {{ height: 4px; background: {BORDER}; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {ACCENT}; border-radius: 2px; }}
QSlider::handle:horizontal {{
    width: 12px; height: 12px; margin: -5px 0; border-radius: 7px; background: {PAPER}; border: 2px solid {ACCENT};
}}
QLabel:disabled, QLineEdit:disabled {{ color: {FAINT}; }}
QSlider::sub-page:horizontal:disabled {{ background: {FAINT}; }}
QSlider::handle:horizontal:disabled {{ border-color: {FAINT}; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; border: none; }}
QScrollBar:vertical {{ width: 8px; background: transparent; }}
QScrollBar::handle:vertical {{ background: {BORDER}; border-radius: 4px; min-height: 24px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; }}
QSplitter::handle {{ background: transparent; }}
QToolTip {{ background: {INK}; color: {PAPER}; border: none; padding: 4px; }}
"""


def wants_dark(app: QApplication) -> bool:
    """Tell whether the colours are to be those of the night: as the variable says, or else the desktop."""
    chosen = os.environ.get(VARIABLE, "").strip().lower()
    if chosen in ("dark", "light"):
        return chosen == "dark"
    scheme = getattr(app.styleHints(), "colorScheme", None)
    return scheme is not None and scheme() == Qt.ColorScheme.Dark


def apply(app: QApplication, dark: bool = False) -> None:
    """Give the application its look, before windows are made; that of the desktop is not asked but for the colours."""
    if dark:
        globals().update(_DARK)
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
        (roles.HighlightedText, PAPER),
        (roles.ToolTipBase, INK),
        (roles.ToolTipText, PAPER),
        (roles.AlternateBase, RAISED),
        (roles.PlaceholderText, MUTED),
    ):
        palette.setColor(role, QColor(colour))
    app.setPalette(palette)
    app.setStyleSheet(_style())


def plot_font() -> QFont:
    """Return the font of the numbers at the axes."""
    font = QFont()
    font.setFamilies(_FAMILIES)
    font.setPixelSize(11)
    return font


def trace(k: int) -> str:
    """Return the colour of trace k."""
    return TRACES[k % len(TRACES)]
