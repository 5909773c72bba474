"""Icons, drawn here: strokes on a grid of 16 by 16, in the colour of the text beside them."""

from __future__ import annotations

ICONS = {
    "instances": "M2.5 3.5h11v4h-11zM2.5 8.5h11v4h-11zM5 5.5h.01M5 10.5h.01",
    "operations": "M2.5 4h2M2.5 8h2M2.5 12h2M7 4h6.5M7 8h6.5M7 12h6.5",
    "bills": "M3.5 1.5h9v13l-2-1.3-1.5 1.3-1-1-1 1-1.5-1.3-2 1.3zM6 5h4M6 8h4",
    "caps": "M2 12.5a6 6 0 1 1 12 0M8 12.5l3-4.5M8 12.5h.01",
    "keys": "M9.5 6.5 3 13v.5h2.5V12H7v-1.5L8.5 9M14 5.5a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0z",
    "service_accounts": "M4 5.5h8v7H4zM8 5.5v-3M6.5 2.5h3M6.5 8.5h.01M9.5 8.5h.01M6.5 10.8h3M2 8v2.5M14 8v2.5",
    "members": "M8.5 5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4"
    "M10.5 2.7a2.5 2.5 0 0 1 0 4.6M12.5 9.9c1.3.6 2 1.9 2 3.6",
    "roles": "M8 1.8 13 4v4c0 3-2 5-5 6.2C5 13 3 11 3 8V4zM5.8 8l1.6 1.6L10.4 6.4",
    "audit": "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
    "settings": "M2.5 5H8M11 5h2.5M2.5 11H5M8 11h5.5M11 5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z"
    "M8 11a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z",
    "fleet": "M8 2v3M8 5 3.5 9.5M8 5l4.5 4.5M8 5v4.5M2 10h3v3.5H2zM6.5 10h3v3.5h-3zM11 10h3v3.5h-3z",
    "copy": "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
    "plus": "M8 3v10M3 8h10",
    "search": "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.3 10.3 14 14",
    "check": "m3 8.5 3.5 3.5L13 4.5",
    "cross": "m4 4 8 8M12 4l-8 8",
    "menu": "M2.5 4h11M2.5 8h11M2.5 12h11",
    "chevron": "m4.5 6 3.5 3.5L11.5 6",
    "alert": "M8 2.5 1.5 13.5h13zM8 6.5v3.5M8 12h.01",
    "info": "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 7.5v3.5M8 5.2h.01",
    "topics": "M2.5 4.5h11M2.5 8h7M2.5 11.5h9",
    "external": "M9 2.5h4.5V7M13.5 2.5 7 9M11 9.5v4H2.5V5h4",
}
