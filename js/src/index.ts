/** Sottovoce for browsers, Node and React Native: what an app needs. */

export { Client, type ClientSettings } from "./device/client.js";
export type { Context } from "./device/encode.js";
export { browserStore } from "./device/indexed_db.js";
export { Decision } from "./device/kept_decisions.js";
export { type AnyLedger, Ledger, type LedgerEntry, type LedgerSettings, type Purpose } from "./device/ledger.js";
export type { Reward } from "./device/privatise.js";
export { memoryStore, type Store } from "./device/store.js";
export type { Request, Response, Transport } from "./device/transport.js";
export * from "./shared/errors.js";
export type { Release } from "./shared/release.js";
