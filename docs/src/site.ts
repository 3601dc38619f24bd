/** `npm run docs` builds the site; with `dev` it shows the site while it changes, with `preview` as it is built. */
import { build, createServer, serve } from "vitepress"
import { check } from "./Check.ts"
import * as Generated from "./Generated.ts"
import { root } from "./Pages.ts"

const docs = `${root}docs`

switch (process.argv[2]) {
  case undefined: {
    await Generated.write()
    await build(docs)
    break
  }
  case "dev": {
    await Generated.write()
    const server = await createServer(docs)
    await server.listen()
    server.printUrls()
    break
  }
  case "preview": {
    await serve({ root: docs })
    break
  }
  case "check": {
    const { looked, problems } = await check(process.argv.slice(3))
    process.stdout.write([...problems, looked, ""].join("\n"))
    process.exitCode = problems.length === 0 ? 0 : 1
    break
  }
  default: {
    throw new Error("npm run docs [-- dev | preview | check]")
  }
}
