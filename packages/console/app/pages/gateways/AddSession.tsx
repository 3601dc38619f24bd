/**
 * The time in which sub-devices may join a gateway. The address carries the session
 * that is shown; without one, it is that which is open, whoever has opened it.
 */
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { now } from "../../api/clock.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery, useQuery } from "../../api/useQuery.ts"
import { DeviceLink, useProducts } from "../../parts/Devices.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { CheckField, Form, TextField } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { tellFailure } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"
import type { SubDevice } from "./Gateway.tsx"

/** `topology`: what the gateway has now; what was added is read again when it changes. */
export const AddSession = ({ gatewayId, topology }: {
  readonly gatewayId: string
  readonly topology: ReadonlyArray<SubDevice>
}) => {
  const { gateways } = useTexts()
  const url = useUrl()
  const [isStarting, setStarting] = useState(false)
  const query = usePolledQuery(
    (signal) => api.topology.readAddSession({ params: { device_id: gatewayId }, signal }),
    [gatewayId],
    5
  )
  const open = query.data?.session ?? undefined
  const session = url.get("session") || (open?.session_id ?? "")
  return (
    <>
      {query.data !== undefined && session !== "" && (
        <OpenSession
          gatewayId={gatewayId}
          sessionId={session}
          until={open?.session_id === session ? Date.parse(open.ends_at) : 0}
          topology={topology}
          onStopped={query.reload}
        />
      )}
      {canWrite("topology") && (
        <div class="row">
          <button type="button" class={session === "" ? "button primary" : "button"} onClick={() => setStarting(true)}>
            {session === "" ? gateways.start : gateways.startAnother}
          </button>
        </div>
      )}
      {isStarting && (
        <StartSession
          gatewayId={gatewayId}
          onClose={() => setStarting(false)}
          onStarted={(session) => {
            query.reload()
            url.set({ session })
          }}
        />
      )}
    </>
  )
}

/** `until`: when it ends, Unix milliseconds; 0: it has ended. */
const OpenSession = ({ gatewayId, onStopped, sessionId, topology, until }: {
  readonly gatewayId: string
  readonly sessionId: string
  readonly until: number
  readonly onStopped: () => void
  readonly topology: ReadonlyArray<SubDevice>
}) => {
  const { common, gateways } = useTexts()
  const url = useUrl()
  // The server says whether it is open: the clock of the browser may be wrong.
  const isOpen = until > 0
  const seconds = useSecondsUntil(until)
  const added = useQuery(
    (signal) =>
      api.topology.listAddedSubDevices({ params: { device_id: gatewayId }, query: { session_id: sessionId }, signal }),
    [gatewayId, sessionId, topology]
  )
  const stop = async () => {
    const payload = { action: "sub.add.stop", session_id: sessionId } as const
    await api.topology.changeTopology({ params: { device_id: gatewayId }, payload })
    // What has joined stays in view.
    url.set({ session: sessionId }, true)
    onStopped()
  }
  return (
    <Card
      title={isOpen ? gateways.open : gateways.over}
      actions={isOpen
        ? canWrite("topology") && (
          <button type="button" class="button" onClick={() => void stop().catch(tellFailure)}>{gateways.stop}</button>
        )
        : (
          <button type="button" class="button" onClick={() => url.set({ session: "" })}>{common.close}</button>
        )}
    >
      {isOpen && <p role="timer">{gateways.remaining(duration(seconds))}</p>}
      <Shown query={added}>
        {({ sub_devices }) =>
          sub_devices.length === 0
            ? <p class="soft">{isOpen ? gateways.nothingYet : gateways.nothingAdded}</p>
            : (
              <div class="stack tight">
                <p>{gateways.added(sub_devices.length)}</p>
                <ul class="row topology-added">
                  {sub_devices.map(({ device_id, device_name }) => (
                    <li key={device_id}><DeviceLink id={device_id} name={device_name} /></li>
                  ))}
                </ul>
              </div>
            )}
      </Shown>
    </Card>
  )
}

const duration = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`

/** Seconds that are left, counted down. `until`: Unix milliseconds. */
const useSecondsUntil = (until: number): number => {
  const left = () => Math.max(0, Math.ceil((until - now()) / 1000))
  const [, setSeconds] = useState(left)
  useEffect(() => {
    const timer = setInterval(() => setSeconds(left()), 500)
    return () => clearInterval(timer)
  }, [until])
  return left()
}

const StartSession = ({ gatewayId, onClose, onStarted }: {
  readonly gatewayId: string
  readonly onClose: () => void
  readonly onStarted: (sessionId: string) => void
}) => {
  const { gateways } = useTexts()
  const close = useClose(onClose)
  const products = useProducts()
  const [timeout, setTimeout] = useState("300")
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const subProducts = (products.data?.results ?? []).filter(({ node_type }) => node_type === "gateway-sub")
  const toggle = (productKey: string, isOn: boolean) => {
    const next = new Set(chosen)
    if (isOn) next.add(productKey)
    else next.delete(productKey)
    setChosen(next)
  }
  return (
    <Dialog title={gateways.start} onClose={onClose}>
      <Form
        submit={gateways.startSubmit}
        onCancel={onClose}
        onSubmit={async () => {
          const params = { timeout: Number(timeout), product_keys: [...chosen] }
          const started = await api.topology.changeTopology({
            params: { device_id: gatewayId },
            payload: { action: "sub.add.start", params: params as never }
          }) as { readonly session_id: string }
          onStarted(started.session_id)
          close()
        }}
      >
        <p>{gateways.startBody}</p>
        <TextField
          label={gateways.timeout}
          hint={gateways.timeoutHint}
          path="params.timeout"
          type="number"
          min={1}
          max={3600}
          required
          value={timeout}
          onInput={setTimeout}
        />
        {subProducts.length > 0 && (
          <fieldset class="stack tight">
            <legend>{gateways.products}</legend>
            {subProducts.map(({ name, product_key }) => (
              <CheckField
                key={product_key}
                label={name}
                checked={chosen.has(product_key)}
                onChange={(isOn) => toggle(product_key, isOn)}
              />
            ))}
            <p class="soft small">{gateways.productsHint}</p>
          </fieldset>
        )}
      </Form>
    </Dialog>
  )
}
