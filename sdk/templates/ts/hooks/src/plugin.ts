import { hook, proceed, refuse } from "hotcell-plugin";
import * as config from "hotcell-plugin/config";
import * as log from "hotcell-plugin/log";

export const hooks = {
  "before-tool-call": hook({
    description: "Refuses the tool that the setting `refuse` names.",
    run(event: { tool: string; arguments: unknown }) {
      log.info(`the tool ${event.tool} is called`);
      if (event.tool === config.get("refuse")) return refuse(`the tool \`${event.tool}\` must not be called here`);
      return proceed();
    },
  }),
};
