// One side of a reconciliation by @nostr-dev-kit/sync. Started as `node peer.mjs ITEMS`, where ITEMS is a file of lines
// "timestamp id". Each line of input is one request, each line of output its answer as JSON:
//   start           the first message of an initiator
//   take HEX        what the initiator makes of an answer: {message or null, have, need}
//   answer HEX      the responder's answer to a message
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Negentropy, NegentropyStorage, hexToUint8Array, uint8ArrayToHex } from "@nostr-dev-kit/sync";

const [itemsPath] = process.argv.slice(2);
const storage = new NegentropyStorage();
for (const line of readFileSync(itemsPath, "utf8").split("\n").filter(Boolean)) {
  const [timestamp, id] = line.split(" ");
  storage.insert(Number(timestamp), id);
}
storage.seal();
const side = new Negentropy(storage);

for await (const line of createInterface({ input: process.stdin })) {
  const [request, hex] = line.split(" ");
  let answer;
  if (request === "start") {
    answer = { message: uint8ArrayToHex(await side.initiate()) };
  } else {
    const { nextMessage, have, need } = await side.reconcile(hexToUint8Array(hex));
    answer = {
      message: nextMessage === undefined ? null : uint8ArrayToHex(nextMessage),
      have: have.map(uint8ArrayToHex),
      need: need.map(uint8ArrayToHex),
    };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
