"""Single sign-on by OpenID Connect: an organisation's own provider signs its members in, for that organisation alone.

models     a provider of an organisation; which of its subjects is which member
oidc       what a provider publishes and signs, verified (pure)
asking     the provider's server is asked: its document, its keys, a code for a token
services   a provider is set, tested, put in force; members are connected, and signed in; who is invited comes in by it
selectors  what is shown of it; whether an organisation requires it
touching   whom a change of it concerns: what a dry run says
api        REST for owners; serializers

Who somebody is, is (organisation, issuer, subject), and a member has linked it while signed in otherwise. Addresses in tokens are
not looked at: a provider says what it likes, and would be let into accounts of people who have never heard of it. The one
exception is somebody who has the link of an invitation and no account: then the provider of the organisation that has invited
says whether the invited address is theirs.
"""
