/**
 * The program of the server, for processes that start it.
 */
import { extname } from "node:path"
import { fileURLToPath } from "node:url"

/** `main` beside this file, built or as source. */
export const mainFile = fileURLToPath(new URL(`./main${extname(import.meta.url)}`, import.meta.url))
