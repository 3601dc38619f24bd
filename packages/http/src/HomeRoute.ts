/**
 * `/` leads to what people read first.
 */
import { HttpRouter, HttpServerResponse } from "effect/http"

/** The path of the route. */
export const path = "/"

/** Leads to a page. */
export const layer = (page: string) =>
  HttpRouter.add(
    "GET",
    path,
    HttpServerResponse.jsonUnsafe({ code: 0, message: "success", data: { page } }, {
      status: 302,
      headers: { location: page }
    })
  )
