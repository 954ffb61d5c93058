/** What Node has beside `sottovoce`: a store in a file. */

export { fileStore } from "./device/file.js";
