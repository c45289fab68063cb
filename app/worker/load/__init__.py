"""The load client: streamed requests against an OpenAI-compatible server, stamped at the socket.

    destination   domain/addresses decides; `link` resolves a name once, checks every answer, connects to a checked address
    connection    one keep-alive connection: bytes out, pieces of the answer in, each with the moment it was read
    events        the pieces as events, read after their time is known: tokens, usage, errors
    prompts       bodies of known length and unique words, serialised before the clock starts
    request       what a body asks for, and what is left out for a server that refuses it
    closed, open  the two ways to offer load
    health        whether the client itself was fast enough
    sweep         points one after another, and what is kept of each

No answer is stored, only when its parts came and what the server counted; no key leaves the headers that it is sent in.
"""
