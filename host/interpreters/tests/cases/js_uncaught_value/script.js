throw { reason: "plain object" };
