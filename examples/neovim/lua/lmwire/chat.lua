--- Chats in markdown buffers. The headings separate the turns, so that every turn can be edited.
local Writer = require("lmwire.writer")
local config = require("lmwire.config")
local worker = require("lmwire.worker")

local M = {}

local ROLES = { ["# System"] = "system", ["# You"] = "user", ["# Assistant"] = "assistant" }

-- Functions that stop the running answer of a buffer.
local running = {}
local count = 0

--- Return the messages of a chat's lines. Turns without text are left out.
function M.messages(lines)
  local messages, content, role = {}, {}, nil
  local function close_turn()
    local text = vim.trim(table.concat(content, "\n"))
    if role and text ~= "" then
      table.insert(messages, { role = role, content = text })
    end
  end
  for _, line in ipairs(lines) do
    if ROLES[line] then
      close_turn()
      role, content = ROLES[line], {}
    else
      table.insert(content, line)
    end
  end
  close_turn()
  return messages
end

--- Open a chat, and send a question unless it is empty.
function M.open(question)
  local buffer = vim.api.nvim_create_buf(true, true)
  count = count + 1
  vim.api.nvim_buf_set_name(buffer, "lmwire://chat/" .. count)
  vim.bo[buffer].filetype = "markdown"
  local lines = vim.list_extend({ "# You", "" }, vim.split(question or "", "\n", { plain = true }))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.keymap.set("n", "<CR>", M.send, { buffer = buffer, desc = "Send the chat to the model" })
  vim.keymap.set("n", "<C-c>", M.stop, { buffer = buffer, desc = "Stop the answer" })
  vim.cmd("sbuffer " .. buffer)
  vim.cmd("let &g:undolevels = &g:undolevels") -- ends the step of undo: the answer is one of its own
  vim.api.nvim_win_set_cursor(0, { #lines, 0 })
  if question and question ~= "" then
    M.send()
  end
end

--- Stop the answer of the current chat, and keep its text.
function M.stop()
  local stop = running[vim.api.nvim_get_current_buf()]
  if stop then
    stop()
  end
end

--- A line of an answer that looks like a heading must not open a turn.
local function escape(line)
  return ROLES[line] and "\\" .. line
end

local function finish(writer)
  running[writer.buffer] = nil
  if not vim.api.nvim_buf_is_loaded(writer.buffer) then
    return
  end
  writer:flush()
  writer:replace_lines(escape)
  writer:add("\n\n# You\n\n")
  writer:flush()
end

--- Return a writer at the end of the buffer, below a new heading.
local function open_turn(buffer)
  local last = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_buf_set_lines(buffer, last, last, false, { "", "# Assistant", "", "" })
  vim.api.nvim_win_set_cursor(0, { last + 4, 0 })
  return Writer.new(buffer, last + 3, 0, true)
end

--- Send the current chat to the model.
function M.send()
  local buffer = vim.api.nvim_get_current_buf()
  local messages = M.messages(vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
  if running[buffer] then
    return worker.notify("an answer is still coming; <C-c> stops it", vim.log.levels.WARN)
  elseif #messages == 0 or messages[#messages].role ~= "user" then
    return worker.notify("write a question below `# You` first", vim.log.levels.WARN)
  end
  local writer = open_turn(buffer)
  local function end_turn()
    vim.schedule(function()
      finish(writer)
    end)
  end
  running[buffer] = function() end
  local stop = worker.generate("chat", function()
    return vim.tbl_extend("force", config.values.chat, { messages = messages })
  end, {
    text = function(text)
      writer:add(text)
    end,
    done = function(event)
      if event.finish_reason ~= "stop" and event.finish_reason ~= "cancelled" then
        worker.notify("the answer ended early: " .. event.finish_reason, vim.log.levels.WARN)
      end
      end_turn()
    end,
    failed = function(event)
      if event.code ~= "worker_lost" then
        worker.report(event)
      end
      end_turn()
    end,
  })
  running[buffer] = running[buffer] and stop
end

return M
