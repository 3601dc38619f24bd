/**
 * Asks before what is not saved is lost: the browser before it leaves the console,
 * the console before a link, or the way back, leads to another of its pages.
 */
import { useLocation } from "preact-iso"
import { useEffect } from "preact/hooks"
import { useTexts } from "../text/text.ts"
import { ask } from "./Dialog.tsx"

/** What hears of the way back while something is not saved. */
let holdBack: ((event: PopStateEvent) => void) | undefined

/** Listens to the way back. It is called before the router is drawn: the window tells its listeners in their order. */
export const watchWayBack = (): void => addEventListener("popstate", (event) => holdBack?.(event))

export const useUnsavedWarning = (isUnsaved: boolean): void => {
  const { common } = useTexts()
  const { route, url } = useLocation()
  useEffect(() => {
    if (!isUnsaved) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    const askToLeave = (leave: () => void) =>
      ask({
        title: common.unsavedTitle,
        body: common.unsavedBody,
        action: common.leave,
        danger: true,
        run: async () => leave()
      })
    const hold = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null
      // Others open a window of their own, or leave the console.
      const isWithin = link !== null && link.origin === location.origin && link.pathname.startsWith("/console") &&
        !link.getAttribute("href")!.startsWith("#") && link.target === "" &&
        !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
      if (!isWithin) return
      event.preventDefault()
      event.stopPropagation()
      askToLeave(() => route(link.pathname + link.search))
    }
    holdBack = (event) => {
      if (location.pathname + location.search === url) return
      event.stopImmediatePropagation()
      history.pushState(null, "", url)
      askToLeave(() => {
        holdBack = undefined
        history.back()
      })
    }
    addEventListener("beforeunload", warn)
    // Before the router hears of it.
    document.addEventListener("click", hold, true)
    return () => {
      removeEventListener("beforeunload", warn)
      document.removeEventListener("click", hold, true)
      holdBack = undefined
    }
  }, [isUnsaved, common, route, url])
}
