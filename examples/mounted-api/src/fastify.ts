/**
 * The API in a fastify app, beside a route of its own.
 */
import fastify, { type FastifyInstance } from "fastify"
import type { ApiHandler } from "./cloud.ts"
import { respond } from "./node.ts"

/** Serves on any free port of this machine. */
export const serve = async (handle: ApiHandler): Promise<FastifyInstance> => {
  const app = fastify()
  app.get("/hello", () => "Hello from fastify")
  await app.register(async (api) => {
    // The API reads bodies itself.
    api.removeAllContentTypeParsers()
    api.addContentTypeParser("*", (_request, _payload, done) => done(null))
    for (const path of ["/openapi/*", "/objects/*"]) {
      api.all(path, (request, reply) => {
        reply.hijack()
        // Fastify responds no more, also not to a failure, such as that the cloud is closed.
        return respond(handle, request.raw, reply.raw, request.url).catch((error: unknown) => {
          request.log.error(error)
          reply.raw.destroy()
        })
      })
    }
  })
  await app.listen({ host: "127.0.0.1", port: 0 })
  return app
}
