--- Completions. With `suffix` the mock repeats the words of the prompt; otherwise it repeats the prompt.
local support = require("support")
local equal, lines, wait_for = support.equal, support.lines, support.wait_for

local function wait_for_end()
  wait_for("the end of the answer", function()
    return require("lmwire.worker").answering == 0 and require("lmwire.worker").phase == "ready"
  end)
  vim.wait(1) -- what was scheduled before has run
end

return {
  {
    "the text before the cursor is continued, with the text after it as the suffix",
    function()
      support.use_mock(support.scenario({
        { match = { fields = { suffix = "\nprint(add(1, 2))", max_tokens = 128 } }, reply = { text = "a + b" } },
      }))
      support.edit({ "def add(a, b):", "    return ", "print(add(1, 2))" }, 2, 11)
      vim.cmd("LmwireComplete")
      wait_for_end()
      equal({ "def add(a, b):", "    return a + b", "print(add(1, 2))" }, lines())
    end,
  },
  {
    "a model that cannot fill gaps continues the text before the cursor",
    function()
      require("lmwire").setup({ command = { support.PROGRAM, "worker" }, complete = { max_tokens = 4 } })
      support.edit({ "I am the", "", "The end." }, 1, 7)
      vim.cmd("LmwireComplete")
      wait_for_end()
      local text = lines()
      equal({ "I am the", "The end." }, { text[1]:sub(1, 8), text[#text] })
      assert(#table.concat(text) > #"I am theThe end.", vim.inspect(text))
    end,
  },
  {
    "selected characters are completed alone, and undo is one step",
    function()
      support.use_mock("--token-ms", "2")
      require("lmwire.config").values.complete = { max_tokens = 2 }
      support.edit({ "say one twö three." }, 1, 4)
      vim.cmd('execute "normal! v2e\\<Esc>"')
      vim.cmd("'<,'>LmwireComplete")
      support.break_undo()
      wait_for_end()
      equal({ "say one twöone twö three." }, lines())
      vim.cmd("undo")
      equal({ "say one twö three." }, lines())
    end,
  },
  {
    "an instruction's answer replaces the selected lines in one step of undo",
    function()
      support.use_mock(support.scenario({
        {
          match = { cmd = "chat", last_message = "^Translate.\n\nbonjour\nmonde$" },
          reply = { text = "hello\nworld" },
        },
      }))
      support.edit({ "-- 1", "bonjour", "monde", "-- 2" }, 1, 0)
      vim.cmd("2,3LmwireComplete Translate.")
      wait_for_end()
      equal({ "-- 1", "hello", "world", "-- 2" }, lines())
      vim.cmd("undo")
      equal({ "-- 1", "bonjour", "monde", "-- 2" }, lines())
    end,
  },
  {
    "text goes to its place although lines are inserted above it meanwhile",
    function()
      support.use_mock(support.scenario({
        { reply = { tokens = { "b", "c" }, ["then"] = "wait" } },
      }))
      support.edit({ "a" }, 1, 0)
      vim.cmd("LmwireComplete")
      wait_for("the first text", function()
        return lines()[1] == "abc"
      end)
      vim.api.nvim_buf_set_lines(0, 0, 0, false, { "above" })
      vim.cmd("LmwireStop")
      wait_for_end()
      equal({ "above", "abc" }, lines())
    end,
  },
}
