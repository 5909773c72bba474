"""HTML: the console of tenants, and the operators' pages.

::

    urls.py        every address             views/       one file for each thing a person works on
    page.py        who may open a page       forms/       what people type, and problems beside the field
    shell.py       the frame of every page   templates/   console/*.html, parts/ for what repeats
    middleware.py  security headers, errors  static/      one stylesheet, two small scripts

A tenant's pages carry their organisation in the address, so that two tabs on two organisations cannot get in each
other's way and a link sent to a colleague opens what it shows. Views parse, call one service or selector, and render;
they hold no rules.
"""
