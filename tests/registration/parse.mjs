// Reads [["json" or "toml", text], ...] from stdin; writes what the clients' own parsers make of it.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(join(process.argv[2], "x.js")));
const jsonc = require("jsonc-parser");
const toml = await import(pathToFileURL(require.resolve("smol-toml")));
let input = "";
for await (const chunk of process.stdin) input += chunk;

// Node.js strips a byte order mark from what it reads as a file; VS Code does so, too.
function parsed([form, text]) {
  const words = text.replace(/^\uFEFF/, "");
  if (form === "toml") return toml.parse(words);
  const errors = [];
  const value = jsonc.parse(words, errors, { allowTrailingComma: true });
  if (errors.length) throw new Error(JSON.stringify(errors));
  return value;
}
const replace = (_, value) => (typeof value === "bigint" ? `${value}` : value);
process.stdout.write(JSON.stringify(JSON.parse(input).map(parsed), replace));
