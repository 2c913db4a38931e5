// A usual bot on xmpp.js: it joins its room, says `hello`, and leaves once it has heard that.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const modules = createRequire(process.env.NODE_MODULES + "/");
const { client, xml } = await import(pathToFileURL(modules.resolve("@xmpp/client")));
const { XMPP_SERVICE, XMPP_DOMAIN, XMPP_USERNAME, XMPP_PASSWORD, MUC_ROOM } = process.env;

const bot = client({
  service: XMPP_SERVICE,
  domain: XMPP_DOMAIN,
  username: XMPP_USERNAME,
  password: XMPP_PASSWORD,
});
bot.on("error", (error) => console.error(error));
bot.on("online", () =>
  bot.send(xml("presence", { to: `${MUC_ROOM}/Robot` }, xml("x", "http://jabber.org/protocol/muc"))),
);
bot.on("stanza", (stanza) => {
  if (stanza.is("presence") && stanza.attrs.from === `${MUC_ROOM}/Robot`)
    bot.send(xml("message", { to: MUC_ROOM, type: "groupchat" }, xml("body", {}, "hello")));
  if (stanza.getChildText("body") === "hello") bot.stop();
});
await bot.start();
