"""People and the API keys they act with.

keys access_keys            the text of an API key, and what is stored of it; keys that sign requests
authentication permissions  who calls REST, and what the caller's role may do
attempts                    how often someone may try to sign in
joining                     people and organisations together: signing up, joining one by a link
standing                    what an account lacks to act in organisations
identity/                   how a person is known: addresses, passwords, sessions, second factors
"""
