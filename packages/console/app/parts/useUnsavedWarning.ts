/**
 * Asks before what is not saved is lost: the browser before it leaves the console,
 * the console before a link leads to another of its pages.
 */
import { useLocation } from "preact-iso"
import { useEffect } from "preact/hooks"
import { useTexts } from "../text/text.ts"
import { ask } from "./Dialog.tsx"

export const useUnsavedWarning = (isUnsaved: boolean): void => {
  const { common } = useTexts()
  const { route } = useLocation()
  useEffect(() => {
    if (!isUnsaved) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    const hold = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null
      // Others open a window of their own, or leave the console.
      const isWithin = link !== null && link.origin === location.origin && link.pathname.startsWith("/console") &&
        link.target === "" && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
      if (!isWithin) return
      event.preventDefault()
      event.stopPropagation()
      ask({
        title: common.unsavedTitle,
        body: common.unsavedBody,
        action: common.leave,
        danger: true,
        run: async () => route(link.pathname + link.search)
      })
    }
    addEventListener("beforeunload", warn)
    // Before the router hears of it.
    document.addEventListener("click", hold, true)
    return () => {
      removeEventListener("beforeunload", warn)
      document.removeEventListener("click", hold, true)
    }
  }, [isUnsaved, common, route])
}
