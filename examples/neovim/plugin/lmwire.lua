--- The commands. Each loads the plugin's modules when it is used first.
if vim.g.loaded_lmwire then
  return
end
vim.g.loaded_lmwire = true

local function command(name, run, options)
  vim.api.nvim_create_user_command(name, run, options or {})
end

command("LmwireChat", function(given)
  require("lmwire.chat").open(given.args)
end, { nargs = "*", desc = "Open a chat, and send a question" })

command("LmwireSend", function()
  require("lmwire.chat").send()
end, { desc = "Send the chat of this buffer" })

command("LmwireComplete", function(given)
  local complete = require("lmwire.complete")
  if given.range == 0 then
    complete.at_cursor()
  elseif given.args == "" then
    complete.selection(given.line1, given.line2)
  else
    complete.instruct(given.line1, given.line2, given.args)
  end
end, { nargs = "*", range = true, desc = "Complete at the cursor, or a selection" })

command("LmwireStop", function()
  require("lmwire.worker").stop()
end, { desc = "Stop all answers, and a load" })

command("LmwireModel", function(given)
  if given.args == "" then
    require("lmwire.models").pick()
  else
    require("lmwire.worker").load(given.args)
  end
end, { nargs = "?", desc = "Pick a model, or load the one named" })

command("LmwireRestart", function()
  require("lmwire.worker").restart()
end, { desc = "Start a new worker" })

vim.api.nvim_create_autocmd("VimLeavePre", {
  callback = function()
    local worker = package.loaded["lmwire.worker"]
    if worker then
      worker.close()
    end
  end,
})
