/** `npm run docs` builds the site, `npm run docs -- dev` shows it while it changes, `npm run docs -- preview` serves it. */
import { build, createServer, serve } from "vitepress"
import { root } from "./Pages.ts"

const docs = `${root}docs`

switch (process.argv[2]) {
  case undefined: {
    await build(docs)
    break
  }
  case "dev": {
    const server = await createServer(docs)
    await server.listen()
    server.printUrls()
    break
  }
  case "preview": {
    await serve({ root: docs })
    break
  }
  default: {
    throw new Error("npm run docs [-- dev | preview]")
  }
}
