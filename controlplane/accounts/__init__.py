"""People and the API keys they act with.

keys access_keys            the text of an API key, and what is stored of it; keys that sign requests
scopes key_rules            what a key may do, by address of REST; what it may be limited to (both pure)
key_use key_expiry          from where and when keys are used; whose expires is told
service_accounts service_account_api service_account_serializers   identities without a person
custom_roles custom_role_api   roles of an organisation's own
owned                       what owners make and name: stored, put on record
touching                    whom a change of members, roles and keys concerns: what a dry run says
authentication permissions  who calls REST, and what the caller's role may do
denials                     who was refused something: on record
attempts                    how often someone may try to sign in
listing                     which keys and members a list of REST has, and in which order
joining                     people and organisations together: signing up, joining one by a link
member_api member_serializers   REST of who belongs to an organisation, and of invitations
owners                      mails to the owners of an organisation
standing                    what an account lacks to act in organisations
identity/                   how a person is known: addresses, passwords, sessions, second factors
"""
