/**
 * Leads to another page when something is done.
 */
import { useLocation } from "preact-iso"
import { useEffect, useRef } from "preact/hooks"

/** What it returns leads nowhere once its part of the page is gone: who has closed a form meanwhile is busy with something else. */
export const useGoTo = (): (address: string) => void => {
  const { route } = useLocation()
  const isShown = useRef(true)
  useEffect(() => () => {
    isShown.current = false
  }, [])
  return (address) => {
    if (isShown.current) route(address)
  }
}
