/**
 * Closes a dialog when its form is done.
 */
import { useIsGone } from "./useIsGone.ts"

/** What it returns closes nothing once its part of the page is gone: who has closed a form meanwhile may have opened another. */
export const useClose = (onClose: () => void): () => void => {
  const isGone = useIsGone()
  return () => {
    if (!isGone.current) onClose()
  }
}
