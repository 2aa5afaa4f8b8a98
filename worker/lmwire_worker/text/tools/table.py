"""The table of formats: the markers of every way to write tool calls, and what reads what stands between them.

Harmony (gpt-oss) has messages rather than sections. A message to a tool is the section, and looks like one of

    <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>

The table's `start` is "<|channel|>commentary to=", which is how nearly all begin, and its `end` is "<|call|>". That is
an end-of-turn token, so mostly the turn ends instead. Whoever splits harmony's messages anyway can recognise a call by
" to=" in a message's header (before <|message|>), in whatever channel, and give the reader the header from anywhere
before the name on, then <|message|> and the body: "functions.NAME <|constrain|>json<|message|>{...}" and
" to=functions.NAME<|channel|>commentary json<|message|>{...}" are both read.
"""
