/**
 * The API in a hono app, beside a route of its own. Hono speaks the requests of
 * `fetch` itself, as the handler does.
 */
import { serve as listen } from "@hono/node-server"
import { getConnInfo } from "@hono/node-server/conninfo"
import { Hono } from "hono"
import type { Server } from "node:http"
import type { ApiHandler } from "./cloud.ts"

/** Serves on any free port of this machine. */
export const serve = (handle: ApiHandler): Promise<Server> => {
  const app = new Hono()
  app.get("/hello", (context) => context.text("Hello from hono"))
  for (const path of ["/openapi/*", "/objects/*"]) {
    app.all(path, (context) => handle(context.req.raw, { address: getConnInfo(context).remote.address ?? "unknown" }))
  }
  return new Promise((resolve) => {
    const server = listen({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, () => resolve(server as Server))
  })
}
