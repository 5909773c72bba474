"""How a person is known: addresses that were confirmed, passwords, sessions, second factors.

links      links by e-mail: one address, one purpose, used once
letters    what mails say (pure)
addresses  an address is confirmed, or changed for another one
passwords  a forgotten one is replaced by e-mail
browsers   a browser gets tries of its own by e-mail, whatever strangers do
signing_up  a new person where the service sends mail: no account before the link is used
engine     sessions as Django keeps them, with columns of ours
sessions   those of a person: looked at, ended
agents     which browser it is (pure)
totp       codes of an app, by RFC 6238 (pure)
second_factor  it is set up, asked for and switched off; recovery codes
webauthn   what browsers and authenticators say of passkeys, verified (pure)
passkeys   they are added, used and removed
proving    whether it is the person, before something dangerous
door       what strangers do with somebody's address, answered by the worker
upkeep     what is over goes
trail      what happens to an account, in the audit trail of each of its organisations
"""
