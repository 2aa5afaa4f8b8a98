--- Chats in a buffer, with the mock and with the built-in model.
local support = require("support")
local equal, lines, wait_for = support.equal, support.lines, support.wait_for

local function content()
  return table.concat(lines(), "\n")
end

return {
  {
    "the built-in model's answer comes into a markdown buffer, and the next turn continues the conversation",
    function()
      require("lmwire").setup({ command = { support.PROGRAM, "worker" }, chat = { max_tokens = 12 } })
      vim.cmd("LmwireChat Who are you?")
      support.wait_for_turn()
      equal("markdown", vim.bo.filetype)
      local messages = require("lmwire.chat").messages(lines())
      equal({ "user", "assistant" }, { messages[1].role, messages[2].role })
      assert(messages[2].content:find("I am", 1, true), messages[2].content)
      equal("lmwire: tiny", require("lmwire").statusline())
    end,
  },
  {
    "every turn is sent again with the next question",
    function()
      support.use_mock(support.scenario({
        { match = { last_message = "First" }, reply = { text = "One.\nTwo." } },
        { match = { last_message = "Second" }, reply = { text = "Three." } },
      }))
      vim.cmd("LmwireChat First?")
      support.wait_for_turn()
      vim.api.nvim_buf_set_lines(0, -2, -1, false, { "Second?" })
      vim.cmd("LmwireSend")
      support.wait_for_turn()
      local first = "# You\n\nFirst?\n\n# Assistant\n\nOne.\nTwo.\n\n"
      equal(first .. "# You\n\nSecond?\n\n# Assistant\n\nThree.\n\n# You\n\n", content())
    end,
  },
  {
    "text appears while the answer is generated, and <C-c> keeps it",
    function()
      support.use_mock(support.scenario({ { reply = { tokens = { "so ", "far" }, ["then"] = "wait" } } }))
      vim.cmd("LmwireChat Go on")
      wait_for("the first text", function()
        return content():find("so far", 1, true)
      end)
      equal("lmwire: no model, answering", (require("lmwire").statusline():gsub("mock", "no model")))
      vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes("<C-c>", true, false, true), "xt", false)
      support.wait_for_turn()
      equal("# You\n\nGo on\n\n# Assistant\n\nso far\n\n# You\n\n", content())
      equal({}, support.notices)
      equal(1, #support.children())
    end,
  },
  {
    "undo takes an answer back in one step",
    function()
      support.use_mock("--token-ms", "2")
      vim.cmd("LmwireChat one two three four five six")
      support.break_undo()
      support.wait_for_turn()
      vim.cmd("undo")
      equal("# You\n\none two three four five six", content())
    end,
  },
  {
    "an edit during an answer stays when the rest of the answer is undone",
    function()
      support.use_mock(support.scenario({ { reply = { tokens = { "so ", "far" }, ["then"] = "wait" } } }))
      vim.cmd("LmwireChat Go on")
      wait_for("the first text", function()
        return content():find("so far", 1, true)
      end)
      vim.cmd("let &undolevels = &undolevels")
      vim.api.nvim_buf_set_lines(0, 2, 3, false, { "Go on, please" })
      vim.cmd("let &undolevels = &undolevels")
      vim.cmd("LmwireStop")
      support.wait_for_turn()
      vim.cmd("undo")
      equal("# You\n\nGo on, please\n\n# Assistant\n\nso far", content())
    end,
  },
  {
    "a heading in an answer opens no turn",
    function()
      support.use_mock("--text", "Fine.\n# You\nBuy it")
      vim.cmd("LmwireChat How are you?")
      support.wait_for_turn()
      equal("Fine.\n\\# You\nBuy it", require("lmwire.chat").messages(lines())[2].content)
    end,
  },
  {
    "reasoning is not shown",
    function()
      support.use_mock(support.scenario({ { reply = { reasoning = "Hm, well.", text = "Yes." } } }))
      vim.cmd("LmwireChat Is it?")
      support.wait_for_turn()
      equal("Yes.", require("lmwire.chat").messages(lines())[2].content)
    end,
  },
  {
    "a failure is reported with its code, and the question can be sent again",
    function()
      support.use_mock(support.scenario({
        { times = 1, reply = { error = { code = "busy", message = "too much to do" } } },
        { reply = { text = "Now." } },
      }))
      vim.cmd("LmwireChat Now?")
      support.wait_for_turn()
      equal("lmwire: too much to do (busy)", support.notices[1])
      vim.cmd("LmwireSend")
      wait_for("the answer", function()
        return content():find("Now.", 1, true)
      end)
    end,
  },
  {
    "a chat without a question is not sent",
    function()
      vim.cmd("LmwireChat")
      vim.cmd("LmwireSend")
      support.wait_for_notice("write a question")
    end,
  },
  {
    "unknown events, fields and values are ignored",
    function()
      support.use_mock("--fault", "unknown-event", "--fault", "unknown-fields", "--fault", "unknown-id")
      vim.cmd("LmwireChat one two")
      support.wait_for_turn()
      equal("one two", require("lmwire.chat").messages(lines())[2].content)
    end,
  },
}
