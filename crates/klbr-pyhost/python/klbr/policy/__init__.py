"""The default policies, as ordinary Python to copy and edit.

They say the same as the defaults that are built in; a test compares them. Bind one in an activation manifest:

    [[hooks]]
    slot = "turn.idle"
    run = "klbr.policy.attention:idle"
"""
