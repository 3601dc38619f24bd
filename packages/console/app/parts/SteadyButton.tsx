/**
 * A button that keeps the focus while there is nothing that it could do.
 */
import type { ComponentChildren } from "preact"

/** While it is off, nothing happens when it is pressed. One that is disabled or gone would lose the focus. */
export const SteadyButton = ({ children, isOff, label, onClick, small = true }: {
  readonly isOff: boolean
  readonly onClick: () => void
  /** Its name, where that is not what it shows. */
  readonly label?: string
  readonly small?: boolean
  readonly children: ComponentChildren
}) => (
  <button
    type="button"
    class={small ? "button small" : "button"}
    aria-label={label}
    aria-disabled={isOff}
    onClick={() => isOff || onClick()}
  >
    {children}
  </button>
)
