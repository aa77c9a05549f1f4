"""``weald serve``: the stored state over HTTP, for questions only.

- ``answers``: what the HTTP answers hold. The OpenAPI document is made from these types.
- ``application``: the ASGI application: addresses, the token, the page.
- ``command``: ``weald serve``: the stored state over HTTP, and a page on which the stream
  clusters itself.
- ``events``: lineage as it happens: server-sent events.
- ``exploring``: what the live page shows: the explorer of the newest publication, made anew for
  each.
- ``openapi``: the OpenAPI document, made from the routes and the answers' types.
- ``parameters``: what a question may be asked with: declared once, checked here, told by the
  OpenAPI document.
- ``problem``: errors as ``application/problem+json`` (RFC 9457).
- ``questions``: the questions: each reads the stored state and returns an answer. None of them
  writes.
- ``routes``: which address asks which question, and what each may be asked with.
"""
