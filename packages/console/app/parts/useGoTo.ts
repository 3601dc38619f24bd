/**
 * Leads to another page when something is done.
 */
import { useLocation } from "preact-iso"
import { useIsGone } from "./useIsGone.ts"

/** What it returns leads nowhere once its part of the page is gone: who has closed a form meanwhile is busy with something else. */
export const useGoTo = (): (address: string) => void => {
  const { route } = useLocation()
  const isGone = useIsGone()
  return (address) => {
    if (!isGone.current) route(address)
  }
}
