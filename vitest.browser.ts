/**
 * The browser of the tests.
 */
import { existsSync } from "node:fs"

/** Undefined: there is none. Chromium as a whole takes twice the processor time of its shell without windows. */
export const chromiumPath = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) => existsSync(path))
