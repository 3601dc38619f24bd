/**
 * Builds the site of the console into `dist/site`, from where `src/` serves it.
 */
import { Api } from "@device-cloud/http"
import { defaultClientConditions, defineConfig, type Plugin } from "vite"

const operationsModule = "virtual:operations"

/**
 * The method and path of each operation of the API, from its definition: all that
 * the browser needs to know of it besides its types.
 */
const operations = (): Plugin => ({
  name: "operations",
  resolveId: (id) => id === operationsModule ? `\0${id}` : undefined,
  load: (id) => id === `\0${operationsModule}` ? `export default ${JSON.stringify(operationsOf())}` : undefined
})

const operationsOf = () => {
  const groups: ReadonlyArray<Group> = Object.values(Api.groups)
  return Object.fromEntries(groups.map(({ endpoints, identifier }) => [
    identifier,
    Object.fromEntries(
      Object.values(endpoints).map(({ identifier, method, path }) => [identifier, `${method} ${path}`])
    )
  ]))
}

interface Group {
  readonly identifier: string
  readonly endpoints: Readonly<
    Record<string, { readonly identifier: string; readonly method: string; readonly path: string }>
  >
}

/** The server whose API the console uses while one develops it. */
const server = process.env["DEVICE_CLOUD_URL"] ?? "http://127.0.0.1:8080"
/** The server takes changes from its own pages only: it sees the host that the browser asks. */
const toServer = { target: server, changeOrigin: false }

export default defineConfig({
  base: "/console/",
  plugins: [operations()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: { dedupe: ["preact"], conditions: ["device-cloud-source", ...defaultClientConditions] },
  build: {
    outDir: "dist/site",
    emptyOutDir: true,
    target: "es2022",
    // Styles and pictures are files: the content security policy admits no others.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false
  },
  server: { host: "127.0.0.1", proxy: { "/openapi": toServer, "/objects": toServer } }
})
