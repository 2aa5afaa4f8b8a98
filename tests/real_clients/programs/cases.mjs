// Runs the functions of a client program one after another, and prints one JSON object with their results by name.
globalThis.run = async (functions) => {
  const results = {};
  for (const [name, call] of Object.entries(functions)) {
    try {
      results[name] = { value: (await call()) ?? null };
    } catch (error) {
      const body = error.responseBody ?? error.lastError?.responseBody ?? "";
      results[name] = { error: `${error.stack}\n${body}` };
    }
  }
  console.log(JSON.stringify(results));
};
