/**
 * The key with which receivers of webhooks check that they are from here.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite } from "../../api/session.ts"
import { ask } from "../../parts/Dialog.tsx"
import { Card } from "../../parts/Page.tsx"
import { Snippet } from "../../parts/Small.tsx"
import { tellFailure } from "../../parts/toasts.tsx"
import { useTexts } from "../../text/text.ts"

export const WebhookKey = () => {
  const { subscriptions: { key: words } } = useTexts()
  const [shown, setShown] = useState<string>()
  const show = (promise: Promise<{ readonly key: string }>) => promise.then(({ key }) => setShown(key))
  return (
    <Card
      title={words.title}
      actions={
        <>
          <button
            type="button"
            class="button small"
            onClick={() => {
              if (shown === undefined) void show(api.scenes.getWebhookKey()).catch(tellFailure)
              else setShown(undefined)
            }}
          >
            {shown === undefined ? words.show : words.hide}
          </button>
          {canWrite("scenes", "admin") && (
            <button
              type="button"
              class="button small danger"
              onClick={() =>
                ask({
                  title: words.rotateTitle,
                  body: words.rotateBody,
                  action: words.rotate,
                  danger: true,
                  run: () => show(api.scenes.rotateWebhookKey())
                })}
            >
              {words.rotate}
            </button>
          )}
        </>
      }
    >
      <p class="soft">{words.body}</p>
      {shown !== undefined && <Snippet label={words.label} text={shown} />}
    </Card>
  )
}
