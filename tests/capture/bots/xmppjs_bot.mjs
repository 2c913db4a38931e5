// A bot on xmpp.js that does what it reads, and writes the library's debug log to stderr.
// slixmpp_bot.py says what it reads.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const modules = createRequire(process.env.NODE_MODULES + "/");
const load = async (name) => import(pathToFileURL(modules.resolve(name)));
const { client, xml } = await load("@xmpp/client");
const debug = (await load("@xmpp/debug")).default;
const parse = (await load("ltx")).parse;

const prints = process.env.BOT_PRINTS;
if (prints === "json") {
  const write = console.error;
  console.error = (...words) => write(JSON.stringify({ level: "debug", message: words.join(" ") }));
}
console.debug = console.error;
// Data that comes while the library ends a stream raises in it.
process.on("uncaughtException", () => {});
const { XMPP_SERVICE: service, XMPP_DOMAIN: domain } = process.env;
const never = () => new Promise(() => {});

const withoutAcknowledgements = (element) =>
  element.is("features", "http://etherx.jabber.org/streams") && element.remove("sm", "urn:xmpp:sm:3");

function print(stanza) {
  const words = ["body", "subject", "status"].map((part) => stanza.getChildText(part));
  console.error(`${stanza.attrs.from?.split("/").slice(1).join("/")}: ${words.filter(Boolean).join(" ")}`);
}

function login(number, username, password, resource, option) {
  const bot = client({ service, domain, resource, username, password });
  debug(bot, true);
  bot.timeout = 10000;
  bot.on("error", () => {});
  if (prints) bot.on("stanza", print);
  bot.on("disconnect", () => console.log(`closed ${number}`));
  bot.reconnect.delay = 0;
  if (option !== "manage") bot.reconnect.stop();
  // The library may acknowledge less than it did before, if `enabled` and a stanza come at once.
  // Then the server ends the stream; so it is not offered what the deed does not need.
  if (option !== "manage" && option !== "resume") bot.prependListener("element", withoutAcknowledgements);
  const mechanisms = bot.saslFactory._mechs;
  if (option === "other-mechanism") mechanisms.length = 0;
  // Its SCRAM takes a quarter of a second of the processor; one wrong password and the deeds of other logins use it.
  if (option === "") bot.saslFactory._mechs = mechanisms.filter(({ name }) => name === "PLAIN");
  if (option === "resume") bot.streamManagement.id = "unknown";
  if (option === "deaf") {
    bot.iqCallee.get("urn:xmpp:ping", "ping", never);
    bot.iqCallee.get("http://jabber.org/protocol/disco#info", "query", never);
  }
  if (option === "gives-up") {
    bot.on("nonza", (nonza) => nonza.is("challenge") && bot.stop());
  }
  bot.start().catch(() => option !== "gives-up" && bot.stop());
  return bot;
}

let bot;
let number = 0;
for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith("login ")) bot = login(++number, ...line.split(" ").slice(1));
  else if (line === "close") bot.stop().catch(() => {});
  else if (line !== "again") bot.send(parse(line)).catch(() => {});
}
