/**
 * The API in an express app, beside a route of its own.
 */
import express from "express"
import type { Server } from "node:http"
import type { ApiHandler } from "./cloud.ts"
import { respond } from "./node.ts"

/** Serves on any free port of this machine. */
export const serve = (handle: ApiHandler): Promise<Server> => {
  const app = express()
  // Before any parser of bodies: the API reads them itself.
  app.use(["/openapi", "/objects"], (request, response) => respond(handle, request, response, request.originalUrl))
  app.get("/hello", (_request, response) => {
    response.send("Hello from express")
  })
  return new Promise((resolve) => {
    const server = app.listen(0, "127.0.0.1", () => resolve(server))
  })
}
