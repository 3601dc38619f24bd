/**
 * The console in a browser.
 */
import { render } from "preact"

render(<p>Device Cloud</p>, document.getElementById("app")!)
