/** The pages that are made from code: the API reference, and the operations of the management API. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ExampleServer from "./ExampleServer.ts"
import * as Operations from "./Operations.ts"
import { generated, root } from "./Pages.ts"
import * as Reference from "./Reference.ts"

/** Writes the pages anew. */
export const write = async (): Promise<void> => {
  const server = await ExampleServer.start()
  try {
    const description = await (await fetch(`${server.http}/openapi.json`)).json() as Operations.Description
    rmSync(join(root, generated), { recursive: true, force: true })
    mkdirSync(join(root, generated))
    writeFileSync(join(root, generated, "operations.md"), Operations.page(description))
    for (const [name, text] of Reference.pages(generated)) writeFileSync(join(root, generated, name), text)
  } finally {
    await server.stop()
  }
}
