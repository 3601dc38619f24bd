/**
 * The console in a browser.
 */
import { render } from "preact"
import { App } from "./App.tsx"
import { watchWayBack } from "./parts/useUnsavedWarning.ts"
import "./style/tokens.css"
import "./style/base.css"
import "./style/layout.css"
import "./style/parts.css"
import { loadLanguage } from "./text/text.ts"
import { loadTheme } from "./theme.ts"

loadTheme()
watchWayBack()
void loadLanguage().then(() => render(<App />, document.getElementById("app")!))
