"""What an instance does by itself when its disk fills up: shorten retention, or buy more storage. Off by default.

``rules``       what a policy may say, when it acts, how far retention goes, who loses unread records; pure
``letters``     what owners are written; pure
``models``      the policy of an instance, and what its topics had before retention was shortened
``selectors``   how a policy stands
``services``    a policy is set; ``outlook`` what it would do, without doing it
``evaluation``  every policy is looked at by the clock; where something is to be done, an operation begins
``measuring``   how much is stored now, as far as it is known for certain
``planning``    by how many steps retention is to be shorter, and what that costs whom; pure
``looking``     what a plan needs to know: asked of the cluster
``retention``   the operations that shorten retention and put it back; ``storage``: the one that buys more
``telling``     mails to owners
"""
