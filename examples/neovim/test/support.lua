--- Helpers of the tests.
local worker = require("lmwire.worker")
local uv = vim.uv or vim.loop

local M = { PROGRAM = vim.env.LMWIRE or "lmwire", notices = {} }

-- Limit of each wait, for a busy machine. A wait ends as soon as its condition holds.
local WAIT_MS = 60000

vim.notify = function(sentence)
  table.insert(M.notices, sentence)
end

--- Wait until a condition holds, and return its value.
function M.wait_for(what, condition)
  local value
  vim.wait(WAIT_MS, function()
    value = condition()
    return value
  end, 5)
  assert(value, "did not happen: " .. what .. "; notices: " .. vim.inspect(M.notices))
  return value
end

function M.equal(expected, actual)
  assert(vim.deep_equal(expected, actual), "expected " .. vim.inspect(expected) .. ", got " .. vim.inspect(actual))
end

--- Use a mock worker, with options, from now on.
function M.use_mock(...)
  require("lmwire").setup({ command = { M.PROGRAM, "mock", ... }, model = "mock" })
end

--- Return the options for a mock that follows rules.
function M.scenario(rules)
  local file = vim.fn.tempname()
  vim.fn.writefile({ vim.json.encode({ rules = rules }) }, file)
  return "--scenario", file
end

--- Return the process ids of this process's children that run, zombies excluded.
function M.children()
  local parent = tostring(uv.os_getpid())
  return vim.tbl_filter(function(line)
    local ppid, state = line:match("^%s*%d+%s+(%d+)%s+(%S)")
    return ppid == parent and state ~= "Z" and line:find("lmwire")
  end, vim.fn.systemlist("ps -A -o pid=,ppid=,stat=,args="))
end

function M.lines(buffer)
  return vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false)
end

--- Wait until a notice contains a text, and return the notice.
function M.wait_for_notice(text)
  return M.wait_for("a notice with " .. text, function()
    return vim.tbl_filter(function(notice)
      return notice:find(text, 1, true) ~= nil
    end, M.notices)[1]
  end)
end

--- Wait until the current chat has an empty turn for the user at its end.
function M.wait_for_turn()
  M.wait_for("the end of the answer", function()
    local lines = M.lines()
    return #lines > 5 and lines[#lines] == "" and lines[#lines - 2] == "# You"
  end)
end

--- Open a buffer with lines, and place the cursor.
function M.edit(lines, row, column)
  vim.cmd("enew!")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.api.nvim_win_set_cursor(0, { row, column })
  vim.cmd("let &undolevels = &undolevels") -- the text above is a step of its own
end

--- End a step of undo after each change of the buffer, as typing does.
function M.break_undo()
  vim.api.nvim_buf_attach(0, false, {
    on_lines = function()
      vim.schedule(function()
        vim.cmd("let &g:undolevels = &g:undolevels")
      end)
    end,
  })
end

--- End the worker, and forget what a test has set. No process is left.
function M.reset()
  worker.close()
  M.wait_for("the end of all processes", function()
    return #M.children() == 0
  end)
  worker.path, M.notices = nil, {}
  vim.cmd("silent! %bwipeout!")
  require("lmwire").setup({})
end

return M
