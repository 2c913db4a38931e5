// A bot on xmpp.js that does one wrong after the other, each on a stream of its own.
// It runs alone, and writes the library's debug log to stderr.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const modules = createRequire(process.env.NODE_MODULES + "/");
const load = async (name) => import(pathToFileURL(modules.resolve(name)));
const { client, xml } = await load("@xmpp/client");
const debug = (await load("@xmpp/debug")).default;

console.debug = console.error;
const { MUC_ROOM: room, XMPP_DOMAIN: domain, XMPP_USERNAME: username } = process.env;
const presence = (to) => xml("presence", { to }, xml("x", "http://jabber.org/protocol/muc"));
const message = (to, type, body) => xml("message", { to, type, id: "m1" }, xml("body", {}, body));
const limit = () => new Promise((resolve) => setTimeout(resolve, 1500));
const isAnswer = ({ attrs: { type, from } }) =>
  type === "error" || (type === "groupchat" && from === `${room}/bot`);

const DEEDS = {
  healthy: message(room, "groupchat", "hello"),
  "chat to a room": message(room, "chat", "hello"),
  "groupchat to an occupant": message(`${room}/bot`, "groupchat", "hello"),
  "unknown host": message("nobody@nowhere.invalid", "chat", "hello"),
  "negative priority": xml("presence", {}, xml("priority", {}, "-1")),
  "forbidden character": message(room, "groupchat", "a\x0bb"),
};

for (const deed of process.argv.slice(2)) {
  const password = deed === "wrong password" ? "wrong" : process.env.XMPP_PASSWORD;
  const bot = client({ service: process.env.XMPP_SERVICE, domain, username, password });
  debug(bot, true);
  bot.timeout = 10000;
  bot.reconnect.stop();
  bot.on("error", () => {});
  const joined = new Promise((resolve) =>
    bot.on("stanza", (stanza) => stanza.attrs.from === `${room}/bot` && resolve()),
  );
  const answered = new Promise((resolve) => {
    bot.on("stanza", (stanza) => isAnswer(stanza) && resolve());
    bot.on("disconnect", resolve);
  });
  try {
    await bot.start();
    if (deed === "never joined") await bot.send(message(room, "groupchat", "hello"));
    else if (deed === "no nickname") await bot.send(presence(room));
    else if (deed in DEEDS) {
      await bot.send(presence(`${room}/bot`));
      await joined;
      await bot.send(DEEDS[deed]);
    }
  } catch {
    // What went wrong is in the log.
  }
  await Promise.race([answered, limit()]);
  await bot.stop().catch(() => {});
}
process.exit(0);
