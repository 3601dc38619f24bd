/**
 * A registry of npm on loopback, for packages that are packed and not published.
 */
import { createHash } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { basename, join } from "node:path"

export interface Tarball {
  readonly tarball: string
  /** The folder with what is in it. */
  readonly content: string
}

/** Serves the tarballs. The lines of an `.npmrc` name it as the registry of their scope. */
export const serveRegistry = async (scope: string, tarballs: ReadonlyArray<Tarball>) => {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1)
    const found = packages.get(path)
    if (found === undefined) return response.writeHead(404).end()
    response.end(found)
  })
  server.listen(0, "127.0.0.1").unref()
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const packages = new Map<string, Buffer | string>()
  for (const { content, tarball } of tarballs) {
    const manifest = JSON.parse(readFileSync(join(content, "package.json"), "utf8"))
    const bytes = readFileSync(tarball)
    const file = basename(tarball)
    const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`
    packages.set(file, bytes)
    packages.set(
      manifest.name,
      JSON.stringify({
        name: manifest.name,
        "dist-tags": { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist: { tarball: url + file, integrity } } }
      })
    )
  }
  return { npmrc: `${scope}:registry=${url}\n`, close: () => server.close() }
}
