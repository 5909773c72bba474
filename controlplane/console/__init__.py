"""HTML: the console of tenants, and the operators' pages.

    urls page shell                  every address; who may open a page; the frame of every page
    proof signing_in                 whether it is the person, before something dangerous; between password and code
    challenges passkey_tries         passkeys: a challenge is used once; tries are counted
    single_sign_on                   what a session that an organisation's provider has begun may open
    views forms                      one file for each thing a person works on; what people type
    once                             a form that makes something, sent twice, makes it once
    known_browser                    where somebody has signed in before, a stranger who guesses keeps nobody out
    middleware                       security headers, errors as pages
    listing icons templatetags       rows with a search; icons; numbers with units in templates
    advice rules waits               errors, throttle rules and waiting in words
    wording extraction catalogue     what Python says in the page's language; which texts are shown; `.po` files beside them
    load_words                       what a run of a load says, with names of its page
    contents                         what stands in a message: text, a JSON tree, hex
    flow shares                      what flows against what was bought, and how limits are shared out
    over_time charts times           a history as charts; a chart as data and a table; the time that all charts of a page show
    calendar                         months, days and hours in addresses
    connecting                       what to paste into a client of an instance's route
    palette                          going to a page by a part of its name, and to what the search finds; actions
    places                           which address of REST a page stands for, so that one table opens both
    commandline                      what a person types to do the same by `sluice`

`templates` has console/*.html with parts/ for what repeats, `static` one stylesheet and small scripts. A tenant's pages
carry their organisation in the address, so that two tabs on two organisations cannot get in each other's way and a link sent to a
colleague opens what it shows. Views parse, call one service or selector, and render; they hold no rules.
"""
