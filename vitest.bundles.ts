/**
 * The programs that tests start, each in few files.
 */
import { bundle } from "./scripts/Bundle.ts"

export const setup = async () => {
  await bundle(".bundle", {
    "server/main": "server/src/main.ts",
    "cli/main": "cli/src/main.ts",
    "testing/conform": "testing/src/conformance/main.ts",
    "testing/lamp": "testing/test/nodeTest/lamp.ts"
  })
}
